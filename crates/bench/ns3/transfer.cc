// A transfer, or several that begin together, over one point-to-point link of ns-3: what farpath's paths are made of,
// so that both can be asked the same thing. Prints one line a run, and every segment where that is asked for.
//
// Choices that are not ns-3's defaults, each because it would compare something else:
// - no queue discipline (ns-3 installs FQ-CoDel where there is flow control), a drop-tail device queue of given length;
// - losses happen at the receiving device, behind link and propagation, and spare no SYN;
// - what an oracle compares is written before the connection opens: a write later on is sent 1 ns late;
// - the program reads at once, and never closes.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdio>
#include <ctime>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

/// ns-3 knows no queue without a limit.
constexpr uint32_t UNLIMITED = 100000000;

struct Options
{
    uint64_t rate = 1000000000;
    uint64_t reverseRate = 0;
    uint64_t delayNs = 20000000;
    uint32_t queuePackets = 0;
    uint32_t flows = 1;
    uint64_t size = 1000000;
    uint32_t segment = 1460;
    uint32_t window = 65535;
    std::string control = "ns3::TcpNewReno";
    std::string recovery = "ns3::TcpClassicRecovery";
    bool sack = false;
    bool timestamps = false;
    bool windowScaling = false;
    bool limitedTransmit = true;
    bool hystart = true;
    uint32_t initialWindow = 2;
    uint64_t initialRtoNs = 3000000000;
    uint64_t minRtoNs = 1000000000;
    uint64_t ackDelayNs = 200000000;
    uint32_t ackEvery = 2;
    double loss = 0;
    std::string dropForward;
    std::string dropReverse;
    uint32_t firstSeed = 1;
    uint32_t seeds = 1;
    uint64_t stopNs = 0;
    bool trace = false;
};

/// ns-3's PRR with two of its rules put back to RFC 9937's: what a duplicate ACK reports by SACK is delivered once (a
/// segment more is for where there is no SACK), and RecoverFS is what has not been reported before the first ACK of the
/// recovery (§6.1), not `pipe`. It knows of one connection only.
class PrrOfRfc9937 : public TcpPrrRecovery
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("farpath::PrrOfRfc9937")
                                .SetParent<TcpPrrRecovery>()
                                .AddConstructor<PrrOfRfc9937>();
        return tid;
    }

    void EnterRecovery(Ptr<TcpSocketState> tcb, uint32_t dupAcks, uint32_t unacked, uint32_t delivered) override
    {
        m_ahead = s_sender->GetTxBuffer()->GetLost() + delivered;
        tcb->m_bytesInFlight = tcb->m_bytesInFlight + m_ahead;
        TcpPrrRecovery::EnterRecovery(tcb, dupAcks, unacked, delivered);
    }

    void DoRecovery(Ptr<TcpSocketState> tcb, uint32_t delivered, bool) override
    {
        tcb->m_bytesInFlight = tcb->m_bytesInFlight - m_ahead;
        m_ahead = 0;
        TcpPrrRecovery::DoRecovery(tcb, delivered, false);
    }

    Ptr<TcpRecoveryOps> Fork() override
    {
        return CopyObject<PrrOfRfc9937>(this);
    }

    static inline Ptr<TcpSocketBase> s_sender;

  private:
    uint32_t m_ahead = 0;
};

NS_OBJECT_ENSURE_REGISTERED(PrrOfRfc9937);

/// Drops the packets with these numbers, from 1, that reach a device.
class NumberedDrops : public ErrorModel
{
  public:
    explicit NumberedDrops(std::set<uint64_t> numbers)
        : m_numbers(std::move(numbers))
    {
    }

  private:
    bool DoCorrupt(Ptr<Packet>) override
    {
        return m_numbers.count(++m_seen) > 0;
    }

    void DoReset() override
    {
        m_seen = 0;
    }

    std::set<uint64_t> m_numbers;
    uint64_t m_seen = 0;
};

std::set<uint64_t>
ParseNumbers(const std::string& text)
{
    std::set<uint64_t> numbers;
    std::stringstream stream(text);
    for (std::string item; std::getline(stream, item, ',');)
    {
        numbers.insert(std::stoull(item));
    }
    return numbers;
}

/// One data sender: how much it has still to write, and what it has sent.
struct Upload
{
    Ptr<Socket> socket;
    uint64_t unwritten = 0;
    SequenceNumber32 highest{0};
    uint64_t dataSegments = 0;
    uint64_t retransmissions = 0;
    uint64_t timeouts = 0;
    int64_t rto = 0;
};

class Run
{
  public:
    Run(const Options& options, uint32_t seed)
        : m_options(options)
    {
        RngSeedManager::SetSeed(1);
        RngSeedManager::SetRun(seed);
        BuildPath();
        Listen();
        for (uint32_t flow = 0; flow < options.flows; ++flow)
        {
            Open();
        }
    }

    void Simulate(uint32_t seed)
    {
        const std::clock_t begun = std::clock();
        if (m_options.stopNs > 0)
        {
            Simulator::Stop(NanoSeconds(m_options.stopNs));
        }
        Simulator::Run();
        const double cpu = double(std::clock() - begun) / CLOCKS_PER_SEC;
        uint64_t segments = 0;
        uint64_t retransmissions = 0;
        uint64_t timeouts = 0;
        for (const Upload& upload : m_uploads)
        {
            segments += upload.dataSegments;
            retransmissions += upload.retransmissions;
            timeouts += upload.timeouts;
        }
        std::printf("run %u %lld %llu %llu %llu %llu %llu %.6f\n",
                    seed,
                    m_completed == m_options.flows ? (long long)m_lastRead : -1LL,
                    (unsigned long long)m_read,
                    (unsigned long long)segments,
                    (unsigned long long)retransmissions,
                    (unsigned long long)timeouts,
                    (unsigned long long)Simulator::GetEventCount(),
                    cpu);
        m_uploads.clear();
        PrrOfRfc9937::s_sender = nullptr;
        Simulator::Destroy();
    }

  private:
    void BuildPath()
    {
        m_nodes.Create(2);
        PointToPointHelper link;
        link.DisableFlowControl();
        link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(m_options.rate)));
        link.SetDeviceAttribute("Mtu", UintegerValue(65535));
        link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(m_options.delayNs)));
        // What is being sent does not count here either. Only the data direction has a limit.
        const uint32_t limit = m_options.queuePackets > 0 ? m_options.queuePackets : UNLIMITED;
        link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(PACKETS, limit)));
        NetDeviceContainer devices = link.Install(m_nodes);
        if (m_options.reverseRate > 0)
        {
            devices.Get(1)->SetAttribute("DataRate", DataRateValue(DataRate(m_options.reverseRate)));
        }
        Ptr<PointToPointNetDevice> receiver = DynamicCast<PointToPointNetDevice>(devices.Get(1));
        receiver->GetQueue()->SetMaxSize(QueueSize(PACKETS, UNLIMITED));
        InternetStackHelper internet;
        internet.SetIpv6StackInstall(false);
        internet.Install(m_nodes);
        Ipv4AddressHelper addresses;
        addresses.SetBase("10.0.0.0", "255.255.255.0");
        m_interfaces = addresses.Assign(devices);
        Expose(devices.Get(1), m_options.loss, m_options.dropForward);
        Expose(devices.Get(0), 0, m_options.dropReverse);
        if (m_options.trace)
        {
            Watch(0, 'A');
            Watch(1, 'B');
        }
    }

    static void Expose(Ptr<NetDevice> device, double loss, const std::string& drops)
    {
        Ptr<ErrorModel> model;
        if (loss > 0)
        {
            Ptr<RateErrorModel> rate = CreateObject<RateErrorModel>();
            rate->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
            rate->SetRate(loss);
            rate->AssignStreams(1);
            model = rate;
        }
        else if (!drops.empty())
        {
            model = CreateObject<NumberedDrops>(ParseNumbers(drops));
        }
        if (model)
        {
            device->SetAttribute("ReceiveErrorModel", PointerValue(model));
        }
    }

    void Watch(uint32_t node, char name)
    {
        Ptr<Ipv4L3Protocol> ip = m_nodes.Get(node)->GetObject<Ipv4L3Protocol>();
        ip->TraceConnectWithoutContext("Tx", MakeBoundCallback(&Run::Print, name, 's'));
        ip->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Run::Print, name, 'r'));
    }

    /// `segment <end> <s|r> <time> <position> <payload> <SYN> <ACK or -1>`
    static void Print(char end, char event, Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t)
    {
        Ptr<Packet> copy = packet->Copy();
        Ipv4Header ip;
        copy->RemoveHeader(ip);
        TcpHeader tcp;
        copy->RemoveHeader(tcp);
        const bool syn = tcp.GetFlags() & TcpHeader::SYN;
        const bool acks = tcp.GetFlags() & TcpHeader::ACK;
        std::printf("segment %c %c %lld %u %u %d %lld\n",
                    end,
                    event,
                    (long long)Simulator::Now().GetNanoSeconds(),
                    tcp.GetSequenceNumber().GetValue(),
                    copy->GetSize(),
                    syn,
                    acks ? (long long)tcp.GetAckNumber().GetValue() : -1LL);
    }

    void Listen()
    {
        m_listener = Socket::CreateSocket(m_nodes.Get(1), TcpSocketFactory::GetTypeId());
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), 5001));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Run::Accept, this));
    }

    void Accept(Ptr<Socket> socket, const Address&)
    {
        socket->SetRecvCallback(MakeCallback(&Run::Read, this));
        // A segment that came with the end of the handshake.
        Read(socket);
    }

    void Read(Ptr<Socket> socket)
    {
        uint64_t& read = m_readBy[socket];
        while (Ptr<Packet> packet = socket->Recv())
        {
            if (packet->GetSize() == 0)
            {
                break;
            }
            read += packet->GetSize();
            m_read += packet->GetSize();
            if (read == m_options.size)
            {
                m_lastRead = Simulator::Now().GetNanoSeconds();
                if (++m_completed == m_options.flows)
                {
                    Simulator::Stop();
                }
            }
        }
    }

    void Open()
    {
        const std::size_t number = m_uploads.size();
        m_uploads.emplace_back();
        Upload& upload = m_uploads.back();
        upload.socket = Socket::CreateSocket(m_nodes.Get(0), TcpSocketFactory::GetTypeId());
        upload.unwritten = m_options.size;
        upload.socket->TraceConnectWithoutContext("Tx", MakeCallback(&Run::Count, this).Bind(number));
        upload.socket->TraceConnectWithoutContext("RTO", MakeCallback(&Run::NoteRto, this).Bind(number));
        PrrOfRfc9937::s_sender = DynamicCast<TcpSocketBase>(upload.socket);
        upload.socket->Bind();
        upload.socket->Connect(InetSocketAddress(m_interfaces.GetAddress(1), 5001));
        Write(number);
        upload.socket->SetSendCallback(MakeCallback(&Run::WriteMore, this).Bind(number));
    }

    void WriteMore(std::size_t number, Ptr<Socket>, uint32_t)
    {
        Write(number);
    }

    void Write(std::size_t number)
    {
        Upload& upload = m_uploads[number];
        while (upload.unwritten > 0)
        {
            uint64_t bytes = std::min<uint64_t>(upload.socket->GetTxAvailable(), upload.unwritten);
            if (bytes < upload.unwritten)
            {
                // Whole segments: what is left over would go out as a small one.
                bytes -= bytes % m_options.segment;
            }
            if (bytes == 0 || upload.socket->Send(Create<Packet>(uint32_t(bytes))) < 0)
            {
                return;
            }
            upload.unwritten -= bytes;
        }
    }

    void Count(std::size_t number, Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        if (packet->GetSize() == 0)
        {
            return;
        }
        Upload& upload = m_uploads[number];
        ++upload.dataSegments;
        const SequenceNumber32 end = header.GetSequenceNumber() + packet->GetSize();
        if (end > upload.highest)
        {
            upload.highest = end;
        }
        else
        {
            ++upload.retransmissions;
        }
    }

    /// Nothing tells of a timeout, but it doubles the timeout that stood before.
    void NoteRto(std::size_t number, Time before, Time after)
    {
        Upload& upload = m_uploads[number];
        const bool doubled = after == before + before || (after == Seconds(60) && before < after);
        if (doubled && upload.dataSegments > 0)
        {
            ++upload.timeouts;
        }
    }

    Options m_options;
    NodeContainer m_nodes;
    Ipv4InterfaceContainer m_interfaces;
    Ptr<Socket> m_listener;
    std::vector<Upload> m_uploads;
    std::map<Ptr<Socket>, uint64_t> m_readBy;
    uint64_t m_read = 0;
    uint32_t m_completed = 0;
    int64_t m_lastRead = 0;
};

void
Configure(const Options& options)
{
    const auto set = [](const char* name, const AttributeValue& value) { Config::SetDefault(name, value); };
    set("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(options.control)));
    set("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TypeId::LookupByName(options.recovery)));
    set("ns3::TcpSocket::SegmentSize", UintegerValue(options.segment));
    set("ns3::TcpSocket::RcvBufSize", UintegerValue(options.window));
    // An oracle's file is written at once; a benchmark's does not fit into memory.
    const uint64_t sendBuffer = options.size <= 100000000 ? options.size : 2ULL * options.window;
    set("ns3::TcpSocket::SndBufSize", UintegerValue(sendBuffer));
    set("ns3::TcpSocket::InitialCwnd", UintegerValue(options.initialWindow));
    set("ns3::TcpSocket::ConnTimeout", TimeValue(NanoSeconds(options.initialRtoNs)));
    set("ns3::TcpSocket::ConnCount", UintegerValue(30));
    set("ns3::TcpSocket::DataRetries", UintegerValue(30));
    set("ns3::TcpSocket::DelAckTimeout", TimeValue(NanoSeconds(options.ackDelayNs)));
    set("ns3::TcpSocket::DelAckCount", UintegerValue(options.ackEvery));
    set("ns3::TcpSocketBase::MinRto", TimeValue(NanoSeconds(options.minRtoNs)));
    set("ns3::TcpSocketBase::ClockGranularity", TimeValue(NanoSeconds(1)));
    set("ns3::TcpCubic::HyStart", BooleanValue(options.hystart));
    set("ns3::TcpSocketBase::Sack", BooleanValue(options.sack));
    set("ns3::TcpSocketBase::Timestamp", BooleanValue(options.timestamps));
    set("ns3::TcpSocketBase::WindowScaling", BooleanValue(options.windowScaling));
    set("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(options.limitedTransmit));
}

} // namespace

int
main(int argc, char* argv[])
{
    Options o;
    CommandLine command(__FILE__);
    command.AddValue("rate", "bit/s", o.rate);
    command.AddValue("reverse-rate", "bit/s of the ACKs' direction; 0 is the same", o.reverseRate);
    command.AddValue("delay", "one way, ns", o.delayNs);
    command.AddValue("queue", "packets; 0 is without limit", o.queuePackets);
    command.AddValue("flows", "that begin together", o.flows);
    command.AddValue("size", "bytes of each flow", o.size);
    command.AddValue("segment", "payload bytes", o.segment);
    command.AddValue("window", "receive buffer, bytes", o.window);
    command.AddValue("control", "TypeId of the congestion control", o.control);
    command.AddValue("recovery", "TypeId of the recovery", o.recovery);
    command.AddValue("sack", "", o.sack);
    command.AddValue("timestamps", "", o.timestamps);
    command.AddValue("window-scaling", "", o.windowScaling);
    command.AddValue("limited-transmit", "", o.limitedTransmit);
    command.AddValue("hystart", "of TcpCubic", o.hystart);
    command.AddValue("initial-window", "segments", o.initialWindow);
    command.AddValue("initial-rto", "ns", o.initialRtoNs);
    command.AddValue("min-rto", "ns", o.minRtoNs);
    command.AddValue("ack-delay", "ns", o.ackDelayNs);
    command.AddValue("ack-every", "segments", o.ackEvery);
    command.AddValue("loss", "rate, data direction", o.loss);
    command.AddValue("drop-forward", "numbers of packets, from 1", o.dropForward);
    command.AddValue("drop-reverse", "numbers of packets, from 1", o.dropReverse);
    command.AddValue("first-seed", "", o.firstSeed);
    command.AddValue("seeds", "how many", o.seeds);
    command.AddValue("stop", "ns; 0 is when all is done", o.stopNs);
    command.AddValue("trace", "print every segment", o.trace);
    command.Parse(argc, argv);
    Configure(o);
    for (uint32_t seed = o.firstSeed; seed < o.firstSeed + o.seeds; ++seed)
    {
        Run run(o, seed);
        run.Simulate(seed);
    }
    return 0;
}
